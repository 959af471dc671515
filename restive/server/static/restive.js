/* What pages can do better with a script; everything works without. No build step, no globals. */
"use strict";
(() => {
  /* A button that only a script can serve is there only with one. */
  const wake = (root) => {
    for (const button of root.querySelectorAll("[data-print]")) {
      button.hidden = false;
      button.onclick = () => window.print();
    }
  };

  /* The section one is in stays in sight where the row of sections is wider than a phone. */
  const showCurrent = () => {
    const row = document.querySelector(".sections");
    const here = row && row.querySelector("[aria-current]");
    if (here) row.scrollLeft = here.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
  };

  wake(document);
  showCurrent();
  document.addEventListener("htmx:after:swap", () => wake(document));
})();
