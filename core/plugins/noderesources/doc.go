// Package noderesources is the plugin NodeResourcesFit: a pod goes where what
// it requests is still free, and, of such nodes, to those with the most (or
// the least) left, or the best point of a shape.
package noderesources
