// Package schedulertest runs plugins that are written against
// k8s.io/kube-scheduler/framework in a cluster that is a handful of objects in memory:
// with the daemon's own loop, machine and hosts, the in-tree plugins, and without an
// API server.
//
//	c := schedulertest.New(t, schedulertest.WithPlugin("Even", even.New))
//	c.Add(schedulertest.Node("a"), schedulertest.Node("b"))
//	c.Add(schedulertest.Pod("p"))
//	if node := c.NodeOf("p"); node != "b" { ... }
package schedulertest
