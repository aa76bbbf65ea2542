// Package quota keeps the queues that ElasticQuotas make: what the pods of a namespace are
// guaranteed together (min), what they may use at most (max), and what they use.
//
// A queue may use more than its min if others leave theirs unused. All that queues use
// together is bounded by the sum of their mins. Say that a cluster has two queues:
//
//	queue   min      max      used
//	web     4 CPUs   8 CPUs   6 CPUs
//	batch   6 CPUs   6 CPUs   3 CPUs
//
// web has borrowed 2 CPUs from batch. A pod of web that requests 2 CPUs more is rejected:
// the 11 CPUs in use would exceed the 10 that are guaranteed. A pod of batch that requests
// 3 CPUs is rejected as well, but what it lacks is its own: batch may have it back from
// web.
//
// A queue may be a part of another one, its parent, which has to admit its namespace. What it uses
// counts for the parent, too, and the parent's max bounds it. The sum of the mins is that of the
// queues without a parent.
//
// # What counts
//
// Every pod that has a node, assumed ones included, uses what it requests, until it is
// finished or gone. The Index follows the table, so that a trial on the table shows in it.
//
// Of two ElasticQuotas in one namespace the older one counts. One whose parent is not there,
// or does not admit it, or that is its own ancestor, counts as one without a parent.
// Index.Faults says so.
package quota
