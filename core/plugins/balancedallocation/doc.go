// Package balancedallocation is the plugin NodeResourcesBalancedAllocation: it
// favours nodes where the pod brings the fractions in use of CPU, memory and
// other configured resources closer together.
package balancedallocation
