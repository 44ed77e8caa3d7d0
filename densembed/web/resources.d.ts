// The module that Python makes of the panels' files and of the colours of all figures.
import type { Scale } from "./panels/types.js";

/** HTML and CSS of the panels, by their names. */
export const parts: Record<string, { html: string, css: string }>;
/** The style of the views. */
export const style: string;
export const scales: Record<"density" | "signed" | "ink", Scale["stops"]>;
export const colours: {
  before: string, after: string, against: string, for: string, series: string[],
};
