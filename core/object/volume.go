package object

import (
	"fmt"
	"slices"
	"strings"
)

// Volume is a volume of a pod that the scheduler has to know of; exactly one
// of its parts is set.
type Volume struct {
	// Claim is the name of the claim that it uses, where Claimed. Of a generic
	// Ephemeral volume the claim is made for, and owned by, the pod.
	Claim              string
	Claimed, Ephemeral bool
	Disk               *Disk
	// Migrated is an in-tree volume that a CSI driver may serve. A Disk may be
	// one as well.
	Migrated *MigratedVolume
	// Driver is the driver of an inline CSI volume.
	Driver string
}

// DiskKind is a kind of volume that not every pod on a node may share.
type DiskKind uint8

const (
	GCEPersistentDisk DiskKind = iota
	AWSElasticBlockStore
	ISCSI
	RBD
)

// Disk is a volume that a pod names itself, without claim.
type Disk struct {
	Kind     DiskKind
	Name     string // PD name, volume ID, IQN, or RBD image
	Pool     string // RBD
	Monitors []string
	ReadOnly bool
}

// Conflicts reports whether two pods with these disks may not share a node. Readers may
// share a disk, except for EBS.
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

// PVCs returns the names of the claims that volumes of the pod use in its namespace;
// ephemeral volumes count where asked for.
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

// VolumesKey returns a key that is equal for pods whose volumes no plugin can tell apart;
// "" for a pod without volumes.
func (p *Pod) VolumesKey() string {
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
