// What the user has chosen, in one place, and in the address after the `#`, so that a link shows the same thing.

export interface State {
  view: "routines" | "program";
  /** The routine that is shown, by id. */
  selected: string;
  query: string;
  class: string;
  verdict: string;
  library: string;
  changedOnly: boolean;
  starredOnly: boolean;
  sort: string;
  descending: boolean;
  /** How many times the input that the forecast is for. */
  factor: number;
  /** The runs shown, by index; `b` is -1 when only one is. */
  a: number;
  b: number;
  logX: boolean;
  logY: boolean;
  cost: "cumulative" | "self";
  /** Class of the guess ratio's g(n), and its exponent when that is `n^K`. */
  guess: string;
  guessPower: number;
}

export const DEFAULTS: Readonly<State> = {
  view: "routines",
  selected: "",
  query: "",
  class: "",
  verdict: "",
  library: "",
  changedOnly: false,
  starredOnly: false,
  sort: "rank",
  descending: false,
  factor: 10,
  a: 0,
  b: -1,
  logX: false,
  logY: false,
  cost: "cumulative",
  guess: "",
  guessPower: 1.25,
};

const SHORT: Record<keyof State, string> = {
  view: "view", selected: "r", query: "q", class: "class", verdict: "verdict", library: "lib", changedOnly: "changed",
  starredOnly: "starred", sort: "sort", descending: "desc", factor: "x", a: "a", b: "b", logX: "logx", logY: "logy",
  cost: "cost", guess: "g", guessPower: "k",
};

export function toHash(state: State, defaults: Readonly<State>): string {
  const out = new URLSearchParams();
  for (const key of Object.keys(SHORT) as (keyof State)[]) {
    const value = state[key];
    if (value === defaults[key]) continue;
    out.set(SHORT[key], typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  return out.toString();
}

/** Reads what it can; what is malformed or out of range keeps its default. */
export function fromHash(hash: string, defaults: Readonly<State>): State {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const state: State = { ...defaults };
  const out = state as unknown as Record<string, unknown>;
  for (const key of Object.keys(SHORT) as (keyof State)[]) {
    const text = params.get(SHORT[key]);
    if (text === null) continue;
    const fallback = defaults[key];
    if (typeof fallback === "boolean") out[key] = text === "1";
    else if (typeof fallback === "number") out[key] = text !== "" && Number.isFinite(Number(text)) ? Number(text) : fallback;
    else out[key] = text;
  }
  if (state.view !== "program") state.view = "routines";
  if (state.cost !== "self") state.cost = "cumulative";
  state.factor = Math.min(1000, Math.max(1, state.factor));
  return state;
}

type Listener = (changed: ReadonlySet<keyof State>) => void;

export class Store {
  private state: State;
  private readonly listeners: Listener[] = [];
  private written = "";

  constructor(private readonly defaults: Readonly<State>) {
    this.written = location.hash;
    this.state = fromHash(location.hash, defaults);
    window.addEventListener("hashchange", () => {
      if (location.hash.replace(/^#/, "") !== this.written.replace(/^#/, "")) {
        this.set(fromHash(location.hash, this.defaults));
      }
    });
  }

  get(): Readonly<State> {
    return this.state;
  }

  set(change: Partial<State>): void {
    const changed = new Set<keyof State>();
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (this.state[key] !== change[key]) changed.add(key);
    }
    if (changed.size === 0) return;
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener(changed);
    this.write();
  }

  on(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Browsers refuse too many changes of address in a row (a dragged slider): only the last one counts. */
  private write(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.written = toHash(this.state, this.defaults);
      history.replaceState(null, "", "#" + this.written);
    }, 150);
  }

  private timer: ReturnType<typeof setTimeout> | undefined;
}
