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

  /* The browser knows the time zone of the person who creates a program. */
  for (const field of document.querySelectorAll("[data-guess=timezone]")) {
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || field.value;
  }

  /* The menu closes on Escape and when something else is clicked. */
  const menu = document.querySelector(".more");
  if (menu) {
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }

  /* Keep the focus where it was when a part of the page is replaced. */
  let focused = "";
  document.addEventListener("htmx:before:swap", () => {
    focused = document.activeElement ? document.activeElement.id : "";
  });
  document.addEventListener("htmx:after:swap", () => {
    /* A form that replaces one with radio buttons of the same name loses its choice in Chromium. */
    for (const form of document.querySelectorAll("form.mark")) {
      if (!form.querySelector("[type=radio]:checked")) {
        for (const radio of form.querySelectorAll("[type=radio][checked]")) radio.checked = true;
      }
    }
    const again = focused && document.getElementById(focused);
    if (again && document.activeElement === document.body) again.focus({ preventScroll: true });
  });

  document.documentElement.classList.add("scripted"); /* choices are saved when they are made */
  showPrintButtons(document);
  document.addEventListener("htmx:after:swap", () => showPrintButtons(document));
})();
