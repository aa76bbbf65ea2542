// Package nodename keeps a pod that asks for a node by name (spec.nodeName) off
// all others.
package nodename
