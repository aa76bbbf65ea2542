// Package match compiles what pods say about nodes (node selectors, preferred
// terms, tolerations) and about other pods (terms of pod affinity, topology
// spread constraints). A value is compiled once and matched often.
//
// Each compiled value carries a Key. Two values with the same key give the same
// answer to every question.
package match
