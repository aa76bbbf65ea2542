package object

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
)

// PersistentVolumeClaim is what the scheduler knows of one claim.
type PersistentVolumeClaim struct {
	Meta
	Class      string // its storage class, "" for none
	VolumeName string // spec.volumeName
	// BindCompleted: the volume controller has seen to the binding, so that a
	// claim with a VolumeName is bound for good.
	BindCompleted bool
	Lost          bool // status.phase: its volume is gone
	Terminating   bool
	Sized         bool  // it requests storage
	Bytes         int64 // as much
	Modes         []v1.PersistentVolumeAccessMode
	VolumeMode    v1.PersistentVolumeMode // never empty
	Attributes    string                  // spec.volumeAttributesClassName
	// Selector of volumes, nil for any; SelectorError why it does not parse.
	Selector      labels.Selector
	SelectorError error
	// Owner is the UID of the controlling owner: of a generic ephemeral
	// volume's claim, its pod.
	Owner types.UID
	// SelectedNode is where the scheduler wants a volume to be made, "" while
	// it has not decided.
	SelectedNode string
}

// Bound reports whether the claim is bound to its volume for good.
func (c *PersistentVolumeClaim) Bound() bool { return c.VolumeName != "" && c.BindCompleted }

// PersistentVolume is what the scheduler knows of one volume.
type PersistentVolume struct {
	Meta
	Labels      map[string]string
	Class       string
	Available   bool // status.phase
	Terminating bool
	Bytes       int64
	Modes       []v1.PersistentVolumeAccessMode
	VolumeMode  v1.PersistentVolumeMode // never empty
	Attributes  string
	Claim       *ClaimReference // nil: free
	// ByController: whoever bound it was no user.
	ByController bool
	Nodes        *match.NodeSelector // required node affinity
	// Pin is a label that Nodes demands with one of some values, by which
	// volumes that may suit a node are found fast; nil where there is none.
	Pin    *LabelPin
	Source VolumeSource
	// Migrated is, for an in-tree volume that a CSI driver may serve, the
	// volume as that driver's; nil for all others.
	Migrated *MigratedVolume
}

// CompareSize orders volumes by size, then by UID, then by name.
func (v *PersistentVolume) CompareSize(o *PersistentVolume) int {
	return cmp.Or(cmp.Compare(v.Bytes, o.Bytes), cmp.Compare(v.UID, o.UID), cmp.Compare(v.Name, o.Name))
}

// LabelPin is a label and the values that it may have.
type LabelPin struct {
	Key    string
	Values []string
}

// ClaimReference is the claim that a volume is kept for; UID "" is any of that
// name.
type ClaimReference struct {
	Namespace, Name string
	UID             types.UID
}

// Keeps reports whether the volume is reserved for the claim, bound to it or not.
func (v *PersistentVolume) Keeps(c *PersistentVolumeClaim) bool {
	r := v.Claim
	return r != nil && r.Namespace == c.Namespace && r.Name == c.Name && (r.UID == "" || r.UID == c.UID)
}

// VolumeSource is a CSI driver and its name for a volume; both are "" for a
// volume of another kind.
type VolumeSource struct{ Driver, Handle string }

// Attachable reports whether a CSI driver has to attach the volume.
func (s VolumeSource) Attachable() bool { return s.Driver != "" && s.Handle != "" }

// MigratedVolume is an in-tree volume as the CSI driver knows it that took the
// place of its plugin.
type MigratedVolume struct {
	Plugin string // the in-tree plugin, such as kubernetes.io/aws-ebs
	Source VolumeSource
	Nodes  *match.NodeSelector
	Error  error // why it has no translation
}

// StorageClass is what the scheduler knows of one storage class.
type StorageClass struct {
	Meta
	Provisioner string
	// MigratedTo is the CSI driver that took the place of an in-tree
	// provisioner, "" where none did.
	MigratedTo string
	// HasBindingMode: volumeBindingMode is set; WaitForFirstConsumer: to that mode.
	HasBindingMode, WaitForFirstConsumer bool
	// Topologies are where volumes can be made; none is everywhere.
	Topologies []v1.TopologySelectorTerm
}

// CSINode holds the CSI drivers of a node and their limits. It has the node's name.
type CSINode struct {
	Meta
	Drivers []CSINodeDriver
	// Migrated is the annotation that lists the in-tree plugins which CSI
	// drivers stand in for on the node.
	Migrated string
}

// ForNode returns the CSINode of another node with the same drivers.
func (c *CSINode) ForNode(name string) *CSINode {
	other := *c
	other.Name, other.UID = name, ""
	return &other
}

// Has reports whether the driver is on the node.
func (c *CSINode) Has(driver string) bool {
	return slices.ContainsFunc(c.Drivers, func(d CSINodeDriver) bool { return d.Name == driver })
}

// TopologyKeys returns the labels that say which nodes reach a volume that the
// driver makes on this one; none if the driver is not on the node.
func (c *CSINode) TopologyKeys(driver string) []string {
	if i := slices.IndexFunc(c.Drivers, func(d CSINodeDriver) bool { return d.Name == driver }); i >= 0 {
		return c.Drivers[i].TopologyKeys
	}
	return nil
}

// CSINodeDriver is a CSI driver on a node, and how many volumes it attaches;
// Limited false is any number.
type CSINodeDriver struct {
	Name         string
	Limited      bool
	Limit        int32
	TopologyKeys []string
}

// CSIDriver is what the scheduler knows of one CSI driver.
type CSIDriver struct {
	Meta
	StorageCapacity bool // it publishes what room there is
	// PreventIfMissing: pods with its volumes stay off nodes without it.
	PreventIfMissing bool
}

// CSIStorageCapacity is the capacity for volumes of a storage class on some nodes.
type CSIStorageCapacity struct {
	Meta
	Class string
	// Bytes is the largest volume that fits; Known false: none is promised.
	Bytes int64
	Known bool
	// Free is the available capacity in bytes, 0 if it is unknown.
	Free  int64
	Nodes labels.Selector // nil: no node
}

// IndexKey returns where the capacity is listed: under its class.
func (c *CSIStorageCapacity) IndexKey() string { return c.Class }

// VolumeAttachment is a volume that is attached to a node, or will be.
type VolumeAttachment struct {
	Meta
	Attacher string // the CSI driver
	Node     string
	Volume   string // the PersistentVolume's name, "" for an inline volume
}

// IndexKey returns where the attachment is listed: under its node.
func (a *VolumeAttachment) IndexKey() string { return a.Node }
