// What a component tells the server, in order.

/**
 * The messages of one component, numbered. The server's data hold the number of the last message
 * that they follow: data that follow an earlier one would undo what the visitor did meanwhile.
 */
export class Messages {
  sent = 0;  // the number of the last one

  /** @template T @param {T} value @returns {{ value: T, order: number }} */
  next(value) { return { value, order: ++this.sent }; }

  /** Whether data follow every message. @param {number} order */
  followed(order) {
    if (order < this.sent) return false;
    this.sent = order;
    return true;
  }
}
