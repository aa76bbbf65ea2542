// Package headroom compares and rates what nodes have left of CPU and memory
// (table.Headroom): what NodeResourcesFit and NodeResourcesBalancedAllocation do for most
// pods. Each plugin can use it alone. A Pass does the work of both in one loop,
// over many rows of a mask (AddMask) or a few (AddRows).
package headroom
