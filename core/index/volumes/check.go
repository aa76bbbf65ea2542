package volumes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// check returns an error for the first difference from the index of a fresh table.
func (x *Index) check(fresh *Index) error {
	if !x.pods.equal(fresh.pods) || !x.attachments.equal(fresh.attachments) {
		return fmt.Errorf("pods have the volumes %v and %v are attached, rebuilt %v and %v", x.pods, x.attachments, fresh.pods, fresh.attachments)
	}
	if !x.claims.equal(fresh.claims) || !x.disks.equal(fresh.disks) {
		return fmt.Errorf("pods use the claims %v and the disks %v, rebuilt %v and %v", x.claims, x.disks, fresh.claims, fresh.disks)
	}
	if !slices.Equal(x.csiNodes, fresh.csiNodes) {
		return fmt.Errorf("the CSINodes of %d rows differ from those rebuilt of %d", len(x.csiNodes), len(fresh.csiNodes))
	}
	for _, r := range x.table.All() {
		if err := x.checkRow(r, fresh); err != nil {
			return fmt.Errorf("node %q: %w", x.table.Name(r), err)
		}
	}
	if len(x.ofPod) != len(fresh.ofPod) {
		return fmt.Errorf("%d pods have volumes, rebuilt %d", len(x.ofPod), len(fresh.ofPod))
	}
	if !maps.EqualFunc(x.claimants, fresh.claimants, maps.Equal) || !maps.EqualFunc(x.attachedNodes, fresh.attachedNodes, maps.Equal) {
		return fmt.Errorf("volumes are named by the claims %v and attached to %v, rebuilt %v and %v", x.claimants, x.attachedNodes, fresh.claimants, fresh.attachedNodes)
	}
	return x.checkTracked()
}

// checkRow returns an error if what is kept of the row is wrong: the volumes of its pods, and
// the number that each driver attaches and its limit, compared with a fresh table's.
func (x *Index) checkRow(r table.Row, fresh *Index) error {
	for _, pl := range x.table.Pods(r) {
		if is := x.OfPod(pl.Pod); !slices.Equal(is, x.ofPod[pl]) {
			return fmt.Errorf("pod %s has the volumes %v, kept %v", pl.Pod.Key(), is, x.ofPod[pl])
		}
	}
	for _, d := range fresh.attached[r] {
		if n := x.Attached(r, d.driver); n != d.volumes || len(x.attached[r]) != len(fresh.attached[r]) {
			return fmt.Errorf("drivers attach %v, rebuilt %v", x.attached[r], fresh.attached[r])
		}
	}
	for driver, c := range x.columns { // any order: an error is an error
		if attached, limit := fresh.Attached(r, driver), limitOf(fresh.csiNodes[r], driver); int(c.Attached[r]) != attached || c.Limits[r] != limit {
			return fmt.Errorf("driver %s attaches %d of %d volumes, its columns say %d of %d", driver, attached, limit, c.Attached[r], c.Limits[r])
		}
	}
	return nil
}
