// Package engine decides which node is best for a pod. Pods that no plugin
// can tell apart form a class, and a class has a view: how each node stands
// with the filters and the scores, kept from one decision to the next. Before a view is used it looks at the rows that changed since, and at
// nothing else; a class seen for the first time is evaluated on every node,
// split over cores. The answer is exact: every node counts, every time.
package engine
