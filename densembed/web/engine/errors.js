// @ts-check

/** A file that is not a valid checkpoint; the message is one sentence. */
export class CheckpointError extends Error {
  name = "CheckpointError";
}

/** A valid checkpoint whose model only Python can compute, such as that of a plugin. */
export class Unsupported extends Error {
  name = "Unsupported";
}
