// Package tainttoleration keeps pods off nodes with taints that they do not
// tolerate (NoSchedule, NoExecute), and prefers nodes with fewer such taints
// of the soft kind (PreferNoSchedule).
package tainttoleration
