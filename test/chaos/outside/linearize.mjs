/**
 * Whether calls that overlapped can be put in one order, each at a moment between its invocation and its completion, in
 * which a model allows every one of them. The search is that of Wing and Gong with the memory of Lowe, as Porcupine and
 * Knossos do it: take the first call that the model allows now, go on without it, and when a completion is met whose call
 * was not taken, take back the last one. What was taken together with the state it led to is never tried twice.
 *
 *     G. Lowe, Testing for linearizability, Concurrency and Computation 29(4), 2017
 *
 * A call without a completion may have happened at any time after its invocation, or never.
 */

/**
 * @typedef {object} Operation
 * @property {string} f
 * @property {unknown} value of its completion, else of its invocation
 * @property {number} from its place in the history
 * @property {number} [to] that of its completion; none: nobody knows what became of it
 */
/**
 * @template S
 * @typedef {object} Model
 * @property {S} first
 * @property {(state: S, operation: Operation) => S | undefined} step undefined: it cannot have happened in this state
 */
/** @typedef {{ readonly isValid: true } | { readonly isValid: false, readonly stuck: Operation }} Verdict stuck: could not be placed */

/**
 * @template S
 * @typedef {object} Search
 * @property {Model<S>} model
 * @property {S} state
 * @property {bigint} bits one for each call that was taken
 * @property {{ readonly call: Node, readonly state: S }[]} taken each with the state before it
 * @property {Set<string>} seen what was taken, with the state after it
 * @property {number} left calls that have a completion and are not taken
 * @property {{ depth: number, operation: Operation | undefined }} deepest where most were taken, the call that could not be
 */

/**
 * @template S
 * @param {Model<S>} model whose states are told apart by their JSON
 * @param {readonly Operation[]} operations
 * @returns {Verdict}
 */
export function linearize(model, operations) {
  const line = lineOf(operations);
  /** @type {Search<S>} */
  const search = {
    model,
    state: model.first,
    bits: 0n,
    taken: [],
    seen: new Set(),
    left: operations.filter(({ to }) => to !== undefined).length,
    deepest: { depth: -1, operation: undefined },
  };
  let at = line.next;
  while (search.left > 0 && at) {
    if (!at.isCall) at = takeBack(search, at);
    else if (take(search, at)) at = line.next;
    else at = at.next;
  }
  const stuck = search.left === 0 ? undefined : search.deepest.operation;
  return stuck ? { isValid: false, stuck } : { isValid: true };
}

/**
 * Whether a call may come next; then it is out of the line.
 *
 * @template S
 * @param {Search<S>} search
 * @param {Node} call
 */
function take(search, call) {
  const { model, state, bits, seen, taken } = search;
  const after = model.step(state, call.operation);
  if (after === undefined) return false;
  const word = JSON.stringify(after);
  // What may never have happened, and changes nothing, need not have happened.
  if (!call.end && word === JSON.stringify(state)) return false;
  const withIt = bits | (1n << BigInt(call.nth));
  const key = `${withIt.toString(36)} ${word}`;
  if (seen.has(key)) return false;
  seen.add(key);
  taken.push({ call, state });
  search.state = after;
  search.bits = withIt;
  search.left -= call.end ? 1 : 0;
  lift(call);
  return true;
}

/**
 * The completion of a call that was not taken: it cannot come later, so the last choice was wrong.
 *
 * @template S
 * @param {Search<S>} search
 * @param {Node} end
 * @returns {Node | undefined} where to go on; none: there was no choice
 */
function takeBack(search, end) {
  if (search.taken.length > search.deepest.depth) {
    search.deepest = { depth: search.taken.length, operation: end.operation };
  }
  const last = search.taken.pop();
  if (!last) return undefined;
  search.state = last.state;
  search.bits &= ~(1n << BigInt(last.call.nth));
  search.left += last.call.end ? 1 : 0;
  putBack(last.call);
  return last.call.next;
}

/**
 * A call or a completion in a line from which it can be taken out and put back where it was.
 *
 * @typedef {object} Node
 * @property {boolean} isCall
 * @property {Operation} operation
 * @property {number} nth
 * @property {Node | undefined} next
 * @property {Node | { next: Node | undefined }} before
 * @property {Node | undefined} end of a call: its completion
 */

/** @param {readonly Operation[]} operations */
function lineOf(operations) {
  /** @type {{ next: Node | undefined }} */
  const head = { next: undefined };
  const places = operations.flatMap((operation, nth) => {
    const parts = { operation, nth, next: undefined, before: head };
    /** @type {Node | undefined} */
    const end = operation.to === undefined ? undefined : { ...parts, isCall: false, end: undefined };
    /** @type {Node} */
    const call = { ...parts, isCall: true, end };
    const first = { place: operation.from, node: call };
    return end ? [first, { place: operation.to ?? 0, node: end }] : [first];
  });
  /** @type {Node | { next: Node | undefined }} */
  let last = head;
  for (const { node } of places.sort((a, b) => a.place - b.place)) {
    node.before = last;
    last.next = node;
    last = node;
  }
  return head;
}

/** @param {Node} call */
function lift(call) {
  takeOut(call);
  if (call.end) takeOut(call.end);
}

/** In the other order than `lift`, so that neighbours find each other. @param {Node} call */
function putBack(call) {
  if (call.end) putIn(call.end);
  putIn(call);
}

/** @param {Node} node */
function takeOut(node) {
  node.before.next = node.next;
  if (node.next) node.next.before = node.before;
}

/** @param {Node} node */
function putIn(node) {
  node.before.next = node;
  if (node.next) node.next.before = node;
}
