// Package turn places pending pods on a machine in the order in which its scheduler takes
// them, so that no two of them are promised the same room. Everything is undone afterwards.
package turn
