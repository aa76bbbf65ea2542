package table

import "fmt"

// claims counts, by claim and row, the volumes of placed pods that use it;
// ephemeral volumes have their claims for themselves.
type claims map[objectName]map[Row]int

// use counts the pod's claims (sign 1) or takes them off (-1).
func (t *Table) use(pl *Placed, sign int) {
	for i := range pl.Pod.Volumes {
		v := &pl.Pod.Volumes[i]
		if !v.Claimed || v.Ephemeral {
			continue
		}
		if t.claims == nil {
			t.claims = claims{}
		}
		at := objectName{pl.Pod.Namespace, v.Claim}
		rows := t.claims[at]
		if rows == nil {
			rows = map[Row]int{}
			t.claims[at] = rows
		}
		if rows[pl.Row] += sign; rows[pl.Row] == 0 {
			if delete(rows, pl.Row); len(rows) == 0 {
				delete(t.claims, at)
			}
		}
	}
}

// ClaimUsed reports whether a pod on a node uses the claim.
func (t *Table) ClaimUsed(namespace, name string) bool {
	for r := range t.claims[objectName{namespace, name}] { // any order: one is enough
		if t.nodes[r] != nil {
			return true
		}
	}
	return false
}

// ClaimUsers returns how many volumes of pods on nodes use the claim.
func (t *Table) ClaimUsers(namespace, name string) (n int) {
	for r, volumes := range t.claims[objectName{namespace, name}] { // any order: a sum
		if t.nodes[r] != nil {
			n += volumes
		}
	}
	return n
}

// compareClaims compares with a rebuild who uses which claim.
func (t *Table) compareClaims(fresh *Table) error {
	if len(t.claims) != len(fresh.claims) {
		return fmt.Errorf("table: %d claims are in use; a rebuild has %d", len(t.claims), len(fresh.claims))
	}
	for at, rows := range t.claims { // any order: an error is an error
		for r, n := range rows { // any order: an error is an error
			if want := fresh.claims[at][fresh.rowOf[t.names[r]]]; n != want || len(rows) != len(fresh.claims[at]) {
				return fmt.Errorf("table: claim %s/%s has %d users on node %q; a rebuild has %d", at.namespace, at.name, n, t.names[r], want)
			}
		}
	}
	return nil
}
