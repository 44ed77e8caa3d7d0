// The data of the panels.

/** A colour scale. Values of an `open` one may exceed its ends. */
export interface Scale {
  low: number;
  high: number;
  name: string;
  unit: string;
  open: boolean;
  stops: [share: number, colour: string][];
}

/** A picture as a URL under a field, which has that opacity. */
export interface Picture {
  url: string;
  opacity: number;
}

/** What draws the values of one axis as curves, one per row, in place of a heatmap. */
export interface Curves {
  /** The colours of the rows. */
  colours: string[];
  /** Those of what lies below and above 0, if the scale has both. */
  signs: [against: string, favour: string] | null;
  /** The input behind them, on a scale of its own. */
  under?: { values: Float32Array, low: number, high: number } | null;
}

/** Densities of one moment: a number per axis in `loc` and `scale`, one in `weights`. */
export interface Densities {
  loc: ArrayLike<number>;
  scale: ArrayLike<number>;
  weights: ArrayLike<number>;
  /** The weight that is drawn strongest. */
  bound: number;
  /** The colours of negative and positive weights. */
  against: string;
  favour: string;
  /** The number, from 1, of the density that is marked. */
  chosen: number | null;
  /** What the weights are, if not weights. */
  name?: string;
}

/** What a panel shows: a field of `shape` over a picture of `size`, densities, or both. */
export interface View {
  values: Float32Array | null;
  shape?: [rows: number, columns: number];
  size: [width: number, height: number];
  /** Values to the left of the divider of a swipe. */
  left?: Float32Array | null;
  scale: Scale;
  title: string;
  note: string;
  /** What can be done with it: on the page, but not in the name of what is saved. */
  hint?: string;
  /** The beginning of the text for screen readers. */
  alt: string;
  picture?: Picture | null;
  contours?: boolean;
  densities?: Densities | null;
  /** A box: its left and upper edge, width and height in pixels of the picture; of a signal its
   * left edge and width. */
  box?: number[] | null;
  /** The path of a density: column and row, column and row …; of a signal its places. */
  path?: number[];
  /** For a view of one axis, whose size is its length and 1. */
  curves?: Curves | null;
  /** The text at a point in shares, for what is not a picture. */
  tip?: (point: number[]) => string;
}

/** A field with 16 bits per number, in base 64. */
export interface Packed {
  stack: string;
  shape: [rows: number, columns: number];
  low: number;
  high: number;
}

/** What a stage shows at every place of its slider. */
export interface StageData {
  /** The places of the slider, what they count, and where it stands. */
  steps: number[];
  by: string;
  step: number;
  size: [width: number, height: number];
  scales: Scale[];
  classes: string[];
  right: number | null;
  /** Whether there are predictions, which need ink. */
  predicts: boolean;
  colours: string[];
  /** Names of the parts to hide. */
  hidden: string[];
}

/** Values by an index, as an array has them; they may be computed when they are asked for. */
export interface Series<T> {
  at(index: number): T | undefined;
}

/** Explore: one training, whose series have an entry per step. */
export interface PairData extends StageData {
  /** The fields, of `shape`; null if there are only densities. */
  fields: Series<Float32Array> | null;
  shape: [rows: number, columns: number];
  densities: Series<Densities> | null;
  /** The boxes in which the densities are placed; null if it is the picture. */
  boxes: Series<number[]> | null;
  way: string;
  divider: number;
  titles: Series<string>;
  notes: Series<string>;
  alt: string;
  predictions: Series<string>;
  numbers: Series<string>;
  probabilities: Series<number[]> | null;
  legend: string[];
  picture: Picture | null;
  contours: boolean;
  /** How the fields of signals are drawn, in the colours of before and after; null for images. */
  curves: Omit<Curves, "colours"> | null;
}

/** A model of Compare, whose series have an entry per snapshot. */
export interface Side {
  name: string;
  model: string;
  colour: string;
  fields: Series<Float32Array>;
  /** The factor of its fields. */
  share: number;
  /** The snapshot at each place of the slider. */
  at: number[];
  moments: Series<string>;
  numbers: Series<string[]>;
  predictions: Series<string>;
  /** In the order of the data's classes; null if the model has others, or the input no ink. */
  probabilities: Series<number[]> | null;
}

/** Compare: two to four models. */
export interface ColumnsData extends StageData {
  label: string;
  shape: [rows: number, columns: number];
  sides: Side[];
  measures: string[];
  note: string;
  /** How the fields of signals are drawn, in the colours of the models; null for images. */
  curves: Omit<Curves, "colours"> | null;
}

/** Fields without a slider. */
export interface StillsData {
  figures: View[];
  columns: number;
  /** The heading and the scale of figures that share them. */
  shared: { title: string, note: string, scale: Scale } | null;
}

/** The same from Python. */
export interface PackedStillsData extends Omit<StillsData, "figures"> {
  figures: (Omit<View, "values"> & (Packed | { stack: null }))[];
}

/** Called with what the visitor changed. */
export interface Callbacks {
  /** The slider came to rest there. */
  step?: (step: number) => void;
  /** The divider of a swipe came to rest there, in percent. */
  divider?: (place: number) => void;
  /** A click on the density of that number, from 1. */
  density?: (number: number) => void;
  /** A click on the question how the prediction came about. */
  why?: () => void;
}

/** The arguments of a Streamlit component. */
export interface Component<Data> {
  parentElement: HTMLElement;
  data: Data;
  setStateValue: (name: string, value: unknown) => void;
  setTriggerValue: (name: string, value: unknown) => void;
}

/** A line of the pad, as x, y, x, y …. */
export interface Stroke {
  width: number;
  points: number[];
}

/** `base` is the URL of a picture under the strokes. */
export interface DrawPadData {
  /** Paints the resulting input of the model. */
  paint: (canvas: HTMLCanvasElement) => void;
  base: string | null;
  strokes: Stroke[];
}

/** `sprite` is the URL of one picture with the thumbnails in a row. */
export interface ThumbnailsData {
  sprite: string;
  numbers: number[];
  chosen: number;
  seeds: number;
  /** The colour behind them, by default black. */
  ground?: string;
}
