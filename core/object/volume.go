package object

import (
	"fmt"
	"slices"
	"strings"
)

// Volume is a volume of a pod that decisions depend on.
type Volume struct {
	// Claim is the name of the PersistentVolumeClaim that the volume uses, if Claimed. The
	// claim of a generic Ephemeral volume is created for the pod, and owned by it.
	Claim              string
	Claimed, Ephemeral bool
	Disk               *Disk // nil unless the volume is of a DiskKind
	// Migrated is set for an in-tree volume without a claim that a CSI driver serves. Disk
	// may be set as well.
	Migrated *MigratedVolume
	// Driver is the driver of an inline CSI volume.
	Driver string
}

// DiskKind is a kind of in-tree volume that pods on one node may not always share
// (VolumeRestrictions).
type DiskKind uint8

// The kinds of in-tree disks with rules about sharing.
const (
	GCEPersistentDisk DiskKind = iota
	AWSElasticBlockStore
	ISCSI
	RBD
)

// Disk is an in-tree volume that the pod's spec names directly, without a claim.
type Disk struct {
	Kind     DiskKind
	Name     string   // PD name, volume ID, IQN, or RBD image
	Pool     string   // RBD
	Monitors []string // RBD
	ReadOnly bool
}

// Conflicts reports whether two pods with these disks may not be on one node. Pods that only
// read may share a disk, except for EBS. RBD images are one disk only if the pool is the same
// and they have a monitor in common.
func (d *Disk) Conflicts(o *Disk) bool {
	switch {
	case d.Kind != o.Kind || d.Name != o.Name:
		return false
	case d.Kind == AWSElasticBlockStore:
		return true
	case d.ReadOnly && o.ReadOnly:
		return false
	case d.Kind == RBD:
		return d.Pool == o.Pool && slices.ContainsFunc(d.Monitors, func(m string) bool { return slices.Contains(o.Monitors, m) })
	}
	return true
}

// UsesPVC reports whether a volume of the pod uses the claim of that name in its
// namespace. The claims of ephemeral volumes count only if ephemeral is set.
func (p *Pod) UsesPVC(name string, ephemeral bool) bool {
	return slices.ContainsFunc(p.Volumes, func(v Volume) bool {
		return v.Claimed && v.Claim == name && (ephemeral || !v.Ephemeral)
	})
}

// PVCs returns the names of the PersistentVolumeClaims that volumes of the pod use, one for
// each volume. The claims of ephemeral volumes are included only if ephemeral is set.
func (p *Pod) PVCs(ephemeral bool) (names []string) {
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Claimed && (ephemeral || !v.Ephemeral) {
			names = append(names, v.Claim)
		}
	}
	return names
}

// HasPVCs reports whether a volume of the pod uses a claim. The claims of ephemeral
// volumes count only if ephemeral is set.
func (p *Pod) HasPVCs(ephemeral bool) bool {
	return slices.ContainsFunc(p.Volumes, func(v Volume) bool { return v.Claimed && (ephemeral || !v.Ephemeral) })
}

// volumesKey returns a key that is equal for pods whose volumes no plugin can tell apart;
// "" for a pod without volumes.
func (p *Pod) volumesKey() string {
	if len(p.Volumes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", p.Namespace)
	for i := range p.Volumes {
		v := &p.Volumes[i]
		switch {
		case v.Ephemeral:
			fmt.Fprintf(&b, "e%q%q", v.Claim, p.UID)
		case v.Claimed:
			fmt.Fprintf(&b, "c%q", v.Claim)
		case v.Driver != "":
			fmt.Fprintf(&b, "d%q", v.Driver)
		}
		if d := v.Disk; d != nil {
			fmt.Fprintf(&b, "%d%q%q%q%t", d.Kind, d.Name, d.Pool, d.Monitors, d.ReadOnly)
		}
		if m := v.Migrated; m != nil {
			fmt.Fprintf(&b, "m%q%q%q", m.Plugin, m.Source.Driver, m.Source.Handle)
		}
	}
	return b.String()
}
