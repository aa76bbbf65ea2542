// Package sim is a virtual cluster with a virtual clock. Cluster stands in for
// the API server. World drives the daemon's machine against it. Run plays a
// given cluster until no queue can move. Nothing here reads a real clock or a
// random source: the same input gives the same run.
package sim
