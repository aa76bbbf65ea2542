// Package whatif plays a cluster after changes that somebody thinks of: nodes
// drained, lost or added, workloads scaled, budgets asked. The changes are made
// to the virtual cluster of a run, and pods that lose their node are made again,
// as their controllers would make them. Whoever runs it hands over a set of
// objects and what is to be done; the answer says who moved where.
package whatif
