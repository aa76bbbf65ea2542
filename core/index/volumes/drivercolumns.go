package volumes

import (
	"math"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// DriverColumns are, by row, how many volumes a CSI driver attaches, and how many it
// can: MaxInt32 where nothing bounds that.
type DriverColumns struct{ Attached, Limits []int32 }

// driversCounted bounds the drivers that have columns.
const driversCounted = 16

// CountDriver makes the driver's columns, if it has none. Readers see no change of the
// table, but it must not be called concurrently.
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

// DriverColumns returns the driver's columns, nil where it has none. They are valid until
// the table changes. Read only.
func (x *Index) DriverColumns(driver string) *DriverColumns { return x.columns[driver] }

// limitOf returns the least limit that the CSINode has for the driver.
func limitOf(c *object.CSINode, driver string) int32 {
	least := int32(math.MaxInt32)
	for i := 0; c != nil && i < len(c.Drivers); i++ {
		if d := &c.Drivers[i]; d.Limited && d.Name == driver {
			least = min(least, d.Limit)
		}
	}
	return least
}

// setCSINode sets the CSINode of the row's node, nil for none, and the limits of its
// drivers.
func (x *Index) setCSINode(r table.Row, c *object.CSINode) {
	x.csiNodes[r] = c
	for driver, of := range x.columns { // any order: each by itself
		of.Limits[r] = limitOf(c, driver)
	}
}
