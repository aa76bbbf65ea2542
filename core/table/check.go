package table

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// Check compares all columns, terms, indexes and followers with those of a table made anew
// from the same nodes, pods and objects. It returns an error that names the first
// difference. It is for tests and audits: it takes long.
func (t *Table) Check() error {
	fresh := t.fresh()
	for r := range t.nodes {
		if len(t.summaries[r]) != len(t.pods[r]) {
			return fmt.Errorf("table: row %d has %d pods and %d summaries", r, len(t.pods[r]), len(t.summaries[r]))
		}
		for i, pl := range t.pods[r] {
			if is := t.summaries[r][i]; is != summaryOf(pl) {
				return fmt.Errorf("table: summary of pod %s %+v, rebuilt %+v", pl.Pod.Key(), is, summaryOf(pl))
			}
			if pl.Row != Row(r) || t.placed[pl.Pod.UID] != pl {
				return fmt.Errorf("table: pod %s is listed on row %d but points elsewhere", pl.Pod.Key(), r)
			}
		}
	}
	if len(fresh.rows.of) != len(t.rows.of) || fresh.live != t.live || len(fresh.placed) != len(t.placed) {
		return fmt.Errorf("table: %d rows, %d nodes, %d pods; a rebuild has %d, %d, %d",
			len(t.rows.of), t.live, len(t.placed), len(fresh.rows.of), fresh.live, len(fresh.placed))
	}
	for name, r := range t.rows.of { // any order: an error is an error
		if err := t.columns.compare(r, &fresh.columns); err != nil {
			return fmt.Errorf("table: node %q: %w", name, err)
		}
	}
	if err := t.terms.compare(&fresh.terms); err != nil {
		return err
	}
	if err := t.podsByLabels.check(t.placed); err != nil {
		return err
	}
	return t.followers.check(fresh)
}

// fresh returns a new table with the same nodes, pods, objects and rows, for Check to compare
// with this one.
func (t *Table) fresh() *Table {
	fresh := New()
	fresh.now = t.now
	fresh.LayOut(&Layout{Rows: t.rows.names, Free: t.rows.free})
	for kind := range object.Kinds {
		for _, o := range t.Objects().List(kind) {
			fresh.Objects().Set(o)
		}
	}
	for _, n := range t.nodes {
		if n != nil {
			fresh.SetNode(n)
		}
	}
	for r, list := range t.pods {
		for _, pl := range list {
			fresh.AddPod(pl.Pod, t.rows.names[r])
		}
	}
	return fresh
}

// compare returns an error for the first difference from fresh, the terms of a table made anew
// with the same rows and pods. Terms that no pod has may be missing in fresh.
func (l *Terms) compare(fresh *Terms) error {
	for _, term := range fresh.list {
		if l.byKey[term.Key] == nil {
			return fmt.Errorf("table: term %q of placed pods is not known", term.Key)
		}
	}
	idle := 0
	for _, term := range l.list {
		if !term.used() {
			idle++
		}
		other := fresh.byKey[term.Key]
		if other == nil {
			other = &Term{}
		}
		if term.live != other.live || len(term.rows.list) != len(other.rows.list) || l.byKey[term.Key] != term {
			return fmt.Errorf("table: term %q counts for %d pods on %d rows, rebuilt for %d on %d",
				term.Key, term.live, len(term.rows.list), other.live, len(other.rows.list))
		}
		for _, c := range term.rows.list {
			if m := other.rows.of(c.Row); m != c.N || term.rows.of(c.Row) != c.N {
				return fmt.Errorf("table: term %q is of %d pods on row %d, rebuilt of %d", term.Key, c.N, c.Row, m)
			}
		}
	}
	if idle != l.idle {
		return fmt.Errorf("table: %d terms are said not to be used, and %d are", l.idle, idle)
	}
	return nil
}

// check returns an error if the lists do not hold exactly the placed pods, each under its
// namespace and labels with its row and Terminating. It returns nil if no lists are kept.
func (l *podsByLabels) check(placed map[types.UID]*Placed) error {
	if l.byNamespace == nil {
		return nil
	}
	pods := 0
	for _, list := range l.byNamespace { // any order: an error is an error
		for _, c := range list { // any order: an error is an error
			pods += len(c.pods)
			var leaving []Row
			for i, pl := range c.pods {
				if c.rows[i] != pl.Row {
					return fmt.Errorf("table: pod %s is on row %d, by its labels on %d", pl.Pod.Key(), pl.Row, c.rows[i])
				}
				if pl.Pod.Terminating {
					leaving = append(leaving, pl.Row)
				}
			}
			slices.Sort(leaving)
			if !slices.Equal(slices.Sorted(slices.Values(c.leaving)), leaving) || len(c.rows) != len(c.pods) {
				return fmt.Errorf("table: of %d pods with the labels %v those on rows %v are terminating, kept %v", len(c.pods), c.Labels, leaving, c.leaving)
			}
		}
	}
	for _, pl := range placed { // any order: an error is an error
		c := pl.withLabels
		if c == nil || l.byNamespace[pl.Pod.Namespace][c.key] != c || c.pods[pl.labelsIndex] != pl || !maps.Equal(c.Labels, pl.Pod.Labels) {
			return fmt.Errorf("table: pod %s is not among those with its labels", pl.Pod.Key())
		}
	}
	if pods != len(placed) {
		return fmt.Errorf("table: %d pods by their labels, %d placed", pods, len(placed))
	}
	return nil
}
