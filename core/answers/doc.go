// Package answers keeps what plugins say that read node objects alone. Pods that such a
// plugin cannot tell apart get the same answers, so they are kept by plugin and signature,
// whatever else the pods differ in. A class of pods is then an intersection of a few sets
// of rows, and what rejects its nodes is counted by population counts.
//
// Say that there are five nodes, two of them tainted, one of these twice. A filter says of
// all pods that tolerate nothing:
//
//	row      0      1      2      3      4
//	taints   -      a      -      a, b   b
//	verdict  Fits   1      Fits   1      2
//
// The partition has a set of rows for verdict 1, {1, 3}, and one for verdict 2, {4}. Rows
// in none of its sets have the answer 0: Fits, or a raw score of 0. When node 4 loses its
// taint, the journal of the table names row 4, and the plugin is asked about it alone.
//
// Answers that are too many for sets are kept in a column instead, one for each row.
package answers
