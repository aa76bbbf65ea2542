// Package features holds the feature gates of Kubernetes. It knows all
// gates by stage and default, so that a cluster can share one --feature-gates
// flag. It names the gates that the scheduler reads, and the gates that each of
// these needs. The library that kube-scheduler uses parses --feature-gates, so
// spelling and errors are the same.
package features
