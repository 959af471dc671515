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

  /* Keep the focus where it was when a part of the page is replaced. */
  let focused = "";
  document.addEventListener("htmx:before:swap", () => {
    focused = document.activeElement ? document.activeElement.id : "";
  });
  document.addEventListener("htmx:after:swap", () => {
    /* A form that replaces one with radio buttons of the same name loses its choice in Chromium. */
    for (const form of document.querySelectorAll(".marks form")) {
      if (!form.querySelector("[type=radio]:checked")) {
        for (const radio of form.querySelectorAll("[type=radio][checked]")) radio.checked = true;
      }
    }
    const again = focused && document.getElementById(focused);
    if (again && document.activeElement === document.body) again.focus({ preventScroll: true });
  });

  document.documentElement.classList.add("scripted"); /* choices are saved when they are made */
  showPrintButtons(document);
  showCurrent();
  document.addEventListener("htmx:after:swap", () => showPrintButtons(document));
})();
