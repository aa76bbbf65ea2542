// Package names holds the names of kube-scheduler's in-tree plugins, as
// configuration files, events and metrics spell them.
package names
