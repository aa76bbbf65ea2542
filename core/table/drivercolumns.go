package table

import (
	"fmt"
	"math"

	"github.com/berth-scheduler/berth/core/object"
)

// DriverColumns are, by row, how many volumes a CSI driver attaches, and how many it
// can: MaxInt32 where nothing bounds that.
type DriverColumns struct{ Attached, Limits []int32 }

// driversCounted bounds the drivers that have columns.
const driversCounted = 16

// CountDriver makes the driver's columns, if it has none. Readers see no change of the
// table, but it must not be called concurrently.
func (t *Table) CountDriver(driver string) {
	v := &t.volumes
	if _, known := v.columns[driver]; known {
		return
	}
	if v.columns == nil || len(v.columns) >= driversCounted {
		v.columns = map[string]*DriverColumns{}
	}
	c := &DriverColumns{make([]int32, len(t.nodes)), make([]int32, len(t.nodes))}
	for r := range t.nodes {
		c.Attached[r], c.Limits[r] = int32(t.AttachedVolumes(Row(r), driver)), limitOf(v.csiNodes[r], driver) // #nosec G115 -- of pods and attachments
	}
	v.columns[driver] = c
}

// DriverColumns returns the driver's columns, nil where it has none. They are valid until
// the table changes. Read only.
func (t *Table) DriverColumns(driver string) *DriverColumns { return t.volumes.columns[driver] }

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
func (v *volumeCounts) setCSINode(r Row, c *object.CSINode) {
	v.csiNodes[r] = c
	for driver, of := range v.columns { // any order: each by itself
		of.Limits[r] = limitOf(c, driver)
	}
}

// checkDriverColumns compares the columns with what they are of.
func (t *Table) checkDriverColumns() error {
	for driver, c := range t.volumes.columns { // any order: an error is an error
		for _, r := range t.all {
			if attached, limit := t.AttachedVolumes(r, driver), limitOf(t.volumes.csiNodes[r], driver); int(c.Attached[r]) != attached || c.Limits[r] != limit {
				return fmt.Errorf("table: node %q: driver %s attaches %d of %d volumes, its columns say %d of %d", t.names[r], driver, attached, limit, c.Attached[r], c.Limits[r])
			}
		}
	}
	return nil
}
