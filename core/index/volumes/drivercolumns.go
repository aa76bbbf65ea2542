package volumes

import (
	"math"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// DriverColumns holds, by row, how many volumes of one CSI driver are attached to the node,
// and the driver's limit there: math.MaxInt32 if there is none.
type DriverColumns struct{ Attached, Limits []int32 }

// driversCounted is the most drivers that have columns; all are dropped when there would be
// more.
const driversCounted = 16

// CountDriver makes the columns of the CSI driver, if it has none, by a look at all rows. They
// are kept up to date from then on. Readers see no change of the table, but it must not be
// called concurrently.
func (x *Index) CountDriver(driver string) {
	if _, known := x.columns[driver]; known {
		return
	}
	if x.columns == nil || len(x.columns) >= driversCounted {
		x.columns = map[string]*DriverColumns{}
	}
	c := &DriverColumns{make([]int32, x.table.Rows()), make([]int32, x.table.Rows())}
	for _, r := range x.table.All() {
		c.Attached[r], c.Limits[r] = int32(x.Attached(r, driver)), limitOf(x.csiNodes[r], driver) // #nosec G115 -- of pods and attachments
	}
	x.columns[driver] = c
}

// DriverColumns returns the driver's columns, nil before CountDriver or if they were dropped.
// They are valid until the table changes. Read only.
func (x *Index) DriverColumns(driver string) *DriverColumns { return x.columns[driver] }

// limitOf returns the lowest limit that the CSINode, which may be nil, states for the
// driver; math.MaxInt32 for none.
func limitOf(c *object.CSINode, driver string) int32 {
	least := int32(math.MaxInt32)
	for i := 0; c != nil && i < len(c.Drivers); i++ {
		if d := &c.Drivers[i]; d.Limited && d.Name == driver {
			least = min(least, d.Limit)
		}
	}
	return least
}

// setCSINode sets the CSINode of the row's node, nil for none, and its limits in the
// columns.
func (x *Index) setCSINode(r table.Row, c *object.CSINode) {
	x.csiNodes[r] = c
	for driver, of := range x.columns { // any order: each by itself
		of.Limits[r] = limitOf(c, driver)
	}
}
