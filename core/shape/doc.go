// Package shape holds the function with which a profile scores utilization:
// points of utilization and score, and straight lines between them.
package shape
