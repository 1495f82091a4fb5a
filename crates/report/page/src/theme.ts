// Light and dark: the system's choice until the user makes one. Canvases read their colours from here.

export type Theme = "light" | "dark";

const KEY = "farsight-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosen(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    // Storage can be forbidden for files.
    return null;
  }
}

export function theme(): Theme {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

function apply(to: Theme): void {
  document.documentElement.dataset["theme"] = to;
  cache.clear();
  for (const listener of listeners) listener();
}

export function start(): void {
  apply(chosen() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => {
    if (!chosen()) apply(system.matches ? "dark" : "light");
  });
}

export function toggle(): void {
  const next = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // It then lasts as long as the page.
  }
  apply(next);
}

export function onChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const cache = new Map<string, string>();

/** The value of a custom property of the style sheet. */
export function color(name: string): string {
  let value = cache.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    cache.set(name, value);
  }
  return value;
}
