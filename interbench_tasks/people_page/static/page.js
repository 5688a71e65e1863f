// What the page does beyond plain forms: keys, drafts that save themselves, the time spent, enlarged pictures, and a
// look at whether anything waits. Everything works without it, but for these.
"use strict";

(() => {
  const SAVE_AFTER_MS = 800;
  const LOOK_EVERY_MS = 3000;
  const byId = (id) => document.getElementById(id);
  const form = byId("answer");
  const saved = byId("saved");
  const offline = byId("offline");
  const key = form ? `interbench ${form.dataset.annotator} ${form.dataset.item}` : "";

  // --- is the server there --------------------------------------------------------------------------------------

  function tellOffline(is) {
    if (!offline) return;
    if (is) {
      offline.textContent =
        "The page's server does not answer. What you write is kept in this browser; start `interbench serve` again " +
        "(same port), then go on here.";
    }
    offline.hidden = !is;
  }

  async function ask(address, options) {
    try {
      const response = await fetch(address, { credentials: "same-origin", ...options });
      tellOffline(false);
      return response;
    } catch {
      tellOffline(true);
      return null;
    }
  }

  async function look() {
    const response = await ask("/status", {});
    if (response && response.ok && !response.redirected) {
      const status = await response.json();
      const counts = byId("counts");
      if (counts) counts.querySelector("strong").textContent = status.to_do;
      const idle = byId("idle");
      if (idle && status.for_you > 0) location.href = "/next";
      else if (idle && idle.dataset.shown !== `${status.waiting} ${status.runs}`) location.reload();
    }
    setTimeout(look, LOOK_EVERY_MS);
  }
  setTimeout(look, LOOK_EVERY_MS);

  // --- time spent: while the page is looked at ------------------------------------------------------------------

  let counted = form ? Number(form.elements.seconds.value) || 0 : 0;
  let since = document.visibilityState === "visible" ? performance.now() : null;

  function spent() {
    const now = performance.now();
    if (since !== null) counted += (now - since) / 1000;
    since = document.visibilityState === "visible" ? now : null;
    if (form) {
      form.elements.seconds.value = counted.toFixed(1);
      form.elements.counted.value = "1";
    }
  }
  document.addEventListener("visibilitychange", spent);

  // --- drafts ---------------------------------------------------------------------------------------------------

  let timer = null;
  let dirty = false;
  let leaving = false;

  function words() {
    const data = new URLSearchParams(new FormData(form));
    data.delete("csrf");
    data.delete("shown_at");
    return data;
  }

  function keepHere() {
    try {
      localStorage.setItem(key, words().toString());
    } catch {
      // private windows may have no storage; the server has what was saved before
    }
  }

  function forgetHere() {
    try {
      localStorage.removeItem(key);
    } catch {
      // as above
    }
  }

  // What was sent is kept here too until another page comes: only then the server has it for sure.
  const SENT = "interbench sent";

  function remember(sent) {
    try {
      localStorage.setItem(SENT, sent);
    } catch {
      // as above
    }
  }

  function forgetWhatWasSent() {
    try {
      const sent = localStorage.getItem(SENT);
      if (sent && sent !== key) localStorage.removeItem(sent);
      localStorage.removeItem(SENT);
    } catch {
      // as above
    }
  }
  forgetWhatWasSent();

  async function save() {
    if (!form || !dirty || leaving) return;
    spent();
    dirty = false;
    const body = words();
    body.set("csrf", form.elements.csrf.value);
    const response = await ask(`/item/${form.dataset.item}/draft`, { method: "POST", body, keepalive: true });
    if (response && response.ok) {
      if (!dirty) forgetHere();
      const { state } = await response.json();
      const words = {
        with_another: "Saved. Somebody else is working on this item too.",
        answered: "Saved, but somebody else has answered this item meanwhile.",
        taken: "Saved, but the run has taken another answer meanwhile.",
      };
      saved.textContent = words[state] || "Draft saved";
    } else {
      dirty = true;
      saved.textContent = response ? "The draft could not be saved on the server; it is kept in this browser." : "Kept in this browser";
    }
  }

  function changed() {
    dirty = true;
    keepHere();
    saved.textContent = "…";
    clearTimeout(timer);
    timer = setTimeout(save, SAVE_AFTER_MS);
  }

  function restore() {
    let kept = null;
    try {
      kept = localStorage.getItem(key);
    } catch {
      return;
    }
    if (!kept) return;
    let restored = false;
    for (const [name, value] of new URLSearchParams(kept)) {
      if (!name.startsWith("field.")) continue;
      const field = form.elements.namedItem(name);
      if (field && field.value !== value) {
        field.value = value;
        restored = true;
      }
    }
    if (restored) changed();
    else forgetHere();
  }

  async function handIn(button) {
    spent();
    keepHere();
    const buttons = form.querySelectorAll("button");
    buttons.forEach((one) => (one.disabled = true));
    const there = await ask("/status", {});
    buttons.forEach((one) => (one.disabled = false));
    if (!there) {
      saved.textContent = "Not sent: the server does not answer. Kept in this browser.";
      return;
    }
    leaving = true;
    clearTimeout(timer);
    remember(key);
    const action = document.createElement("input");
    Object.assign(action, { type: "hidden", name: "action", value: button.value });
    form.append(action);
    if (button.hasAttribute("formaction")) form.action = button.getAttribute("formaction");
    form.submit();
  }

  if (form) {
    restore();
    const problem = form.querySelector(".alert");
    if (problem && !form.elements.asked) {
      const first = form.querySelector("[data-write], input[type=radio]");
      if (first) first.focus({ preventScroll: true });
      problem.scrollIntoView({ block: "center" });
    }
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!leaving) handIn(event.submitter || form.querySelector("[data-first]"));
    });
    window.addEventListener("pagehide", () => save());
    document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && save());
  }
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());

  // --- pictures -------------------------------------------------------------------------------------------------

  const zoom = byId("zoom");

  function enlarge(link) {
    const frame = zoom.querySelector(".frame");
    frame.classList.remove("full");
    frame.querySelector("img").src = link.href;
    zoom.returnTo = link;
    zoom.showModal();
    frame.focus();
  }

  if (zoom) {
    const frame = zoom.querySelector(".frame");
    document.querySelectorAll("[data-zoom]").forEach((link) =>
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        enlarge(link);
      }),
    );
    zoom.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || frame.classList.contains("full")) return;
      const links = [...document.querySelectorAll("[data-zoom]")];
      zoom.returnTo = links[(links.indexOf(zoom.returnTo) + step + links.length) % links.length];
      frame.querySelector("img").src = zoom.returnTo.href;
    });
    frame.addEventListener("click", () => frame.classList.toggle("full"));
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        frame.classList.toggle("full");
      }
    });
    zoom.addEventListener("click", (event) => event.target === zoom && zoom.close());
    zoom.addEventListener("close", () => zoom.returnTo && zoom.returnTo.focus());
  }

  // --- keys -----------------------------------------------------------------------------------------------------

  const writes = (element) =>
    element instanceof HTMLTextAreaElement || (element instanceof HTMLInputElement && element.type === "text");

  // A key of the form goes before one of the page. Where several choices have it (1 on two scales), the
  // first question that is still open is meant, and once all are answered that of the question with the focus.
  function meant(selector) {
    const own = form ? [...form.querySelectorAll(selector)] : [];
    const open = own.find((one) => one.type === "radio" && !form.querySelector(`[name="${one.name}"]:checked`));
    const here = own.find((one) => one.name && one.name === document.activeElement.name);
    return open || here || own[0] || document.querySelector(selector);
  }

  // A key that the form needs is not shown as the page's.
  document.querySelectorAll("header [data-key]").forEach((one) => {
    const taken = form && form.querySelector(`[data-key="${CSS.escape(one.dataset.key)}"]`);
    if (taken) one.querySelectorAll("kbd").forEach((kbd) => kbd.remove());
  });

  document.addEventListener("keydown", (event) => {
    if (zoom && zoom.open) return;
    if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.querySelector("[data-first]").click();
      return;
    }
    if (writes(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const write = form && form.querySelector("[data-write]");
    if (event.key === "w" && write) {
      event.preventDefault();
      write.focus();
      return;
    }
    const wanted = meant(`[data-key="${CSS.escape(event.key)}"]`);
    if (wanted) {
      event.preventDefault();
      if (wanted instanceof HTMLInputElement) wanted.focus();
      wanted.click();
    }
  });

  // --- an invitation with this page's own address ---------------------------------------------------------------

  const invitation = byId("invitation");
  if (invitation) {
    invitation.value = location.origin + invitation.dataset.absolute;
    invitation.select();
  }
})();
