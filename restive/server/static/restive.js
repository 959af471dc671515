/* Enhancements of the pages; everything works without this script. */
"use strict";
(() => {
  /* The print button needs a script, so it is hidden without one. */
  const showPrintButtons = (root) => {
    for (const button of root.querySelectorAll("[data-print]")) {
      button.hidden = false;
      button.onclick = () => window.print();
    }
  };

  /* Scroll the navigation to the current section on narrow screens. */
  const showCurrent = () => {
    const row = document.querySelector(".sections");
    const here = row && row.querySelector("[aria-current]");
    if (here) row.scrollLeft = here.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
  };

  showPrintButtons(document);
  showCurrent();
  document.addEventListener("htmx:after:swap", () => showPrintButtons(document));
})();
