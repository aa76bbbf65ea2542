package object

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/resource"
)

// AppendTemplate appends to key all fields that decide on which nodes a pending pod may run and
// which pods it may preempt. Replicas of one workload usually have equal templates. Names,
// status and what only scores depend on are left out.
func (p *Pod) AppendTemplate(key []byte) []byte {
	for _, s := range [...]string{p.SchedulerName, p.Namespace, p.PodGroup(), p.Tolerations.Key, p.Controller.Name, p.volumesKey()} {
		key = appendString(key, s)
	}
	key = append(key, byte(p.Controller.Kind), bit(p.NeverPreempts), bit(p.RequiredNodes != nil), bit(p.Spread != nil), bit(p.Affinity != nil))
	key = binary.AppendVarint(key, int64(p.Priority))
	if p.RequiredNodes != nil {
		key = appendString(key, p.RequiredNodes.Key)
	}
	if p.Spread != nil {
		key = appendString(key, p.Spread.Key)
	}
	if p.Affinity != nil {
		key = appendString(key, p.Affinity.Key)
	}
	key = appendLabels(key, p.Labels)
	key = appendVector(appendVector(key, &p.Demand.Requests), &p.Demand.Usage)
	key = binary.AppendUvarint(key, uint64(len(p.HostPorts)))
	for _, h := range p.HostPorts {
		key = binary.AppendVarint(appendString(appendString(key, h.IP), string(h.Protocol)), int64(h.Port))
	}
	key = binary.AppendUvarint(key, uint64(len(p.Claims)))
	for _, c := range p.Claims {
		key = append(appendString(appendString(key, c.Claim), c.Error), bit(c.Owned))
	}
	key = binary.AppendUvarint(key, uint64(len(p.Extended)))
	for _, x := range p.Extended {
		key = binary.AppendVarint(appendString(key, string(x.Resource)), x.Count)
	}
	key = binary.AppendUvarint(key, uint64(len(p.Features)))
	for _, f := range p.Features {
		key = appendString(key, f)
	}
	return key
}

// appendLabels appends the labels, sorted by key, to a template.
func appendLabels(key []byte, labels map[string]string) []byte {
	var room [16]string
	names := slices.AppendSeq(room[:0], maps.Keys(labels)) // any order: sorted below
	slices.Sort(names)
	key = binary.AppendUvarint(key, uint64(len(names)))
	for _, name := range names {
		key = appendString(appendString(key, name), labels[name])
	}
	return key
}

// appendVector appends the amounts to a key, so that vectors with equal amounts, and no
// others, have equal parts of keys.
func appendVector(key []byte, v *resource.Vector) []byte {
	for _, n := range [...]int64{v.MilliCPU, v.Memory, v.EphemeralStorage, int64(len(v.Scalars))} {
		key = binary.AppendVarint(key, n)
	}
	for _, s := range v.Scalars {
		key = binary.AppendVarint(appendString(key, string(s.Name)), s.Value)
	}
	return key
}

// appendString appends s to a template, with its length in front.
func appendString(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// bit returns 1 for true, 0 for false.
func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
