// Package volumezone keeps a pod off nodes in other zones and regions than its
// bound volumes, as their labels say. Nodes without any such label pass.
package volumezone
