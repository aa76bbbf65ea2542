// Package nodeports keeps a pod off nodes where another pod has taken one of
// its host ports.
package nodeports
