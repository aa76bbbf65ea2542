// Package podtopologyspread is the plugin PodTopologySpread: pods that belong
// together are spread evenly over zones, hosts or whatever label of nodes
// their constraints name, strictly (DoNotSchedule) or as far as it goes
// (ScheduleAnyway). Pods without constraints of their own get those of the
// profile, if a Service or a controller says who belongs together.
//
// A counts keeps, for one class of pods, how many matching pods are in each
// domain, and is fed from the table's journal of pod changes. Which nodes count is in a
// census, that classes share: it follows the nodes. Rows with the same domains and
// as many pods on the node itself form a cell.
package podtopologyspread
