// Package nodeunschedulable keeps pods off nodes that are marked unschedulable
// (cordoned), unless they tolerate the taint that goes with the mark.
package nodeunschedulable
