// The modes that the page can show. A mode adds itself to the list; a tab appears when a page holds data of more
// than one. Nothing else knows how many there are.

import { causal } from "./causal/view.ts";
import { counts } from "./count/view.ts";
import type { Summary } from "./data.ts";
import { growth } from "./growth/view.ts";
import { idle } from "./idle/view.ts";
import { span } from "./span/view.ts";

export interface View {
  readonly element: HTMLElement;
  /** The mode's own views, for the top bar. */
  readonly tabs: HTMLElement;
  /** A key that nothing else took. */
  key(event: KeyboardEvent): void;
}

export interface Mode {
  readonly id: string;
  readonly title: string;
  /** Whether this page has data of it. */
  present(summary: Summary): boolean;
  mount(summary: Summary): Promise<View>;
}

export const MODES: readonly Mode[] = [growth, counts, idle, causal, span];
