// Package imagelocality is the plugin ImageLocality: it favours nodes that
// have the pod's images already, the more so the larger they are and the more
// nodes have them.
package imagelocality
