package machine

// asked holds the statuses of objects that the API was asked to show and does not show yet. K
// identifies an object, and S is its status.
type asked[K comparable, S any] struct {
	by    map[K]S
	equal func(a, b S) bool
}

// newAsked returns an empty asked.
func newAsked[K comparable, S any](equal func(a, b S) bool) asked[K, S] {
	return asked[K, S]{by: map[K]S{}, equal: equal}
}

// latest returns the status that the API shows of the object before long, if it shows this one
// now.
func (a asked[K, S]) latest(of K, shown S) S {
	if status, is := a.by[of]; is {
		return status
	}
	return shown
}

// due reports whether the API is to be asked to show the status of the object, of which it
// shows another, and records that it is.
func (a asked[K, S]) due(of K, shown, status S) bool {
	if a.equal(a.latest(of, shown), status) {
		return false
	}
	a.by[of] = status
	return true
}

// shows handles the status that the API shows of the object: it forgets the one that was asked
// for if that is shown, or if another is shown than before, nil for none, which somebody else
// may have written.
func (a asked[K, S]) shows(of K, before *S, now S) {
	if status, is := a.by[of]; is && (a.equal(status, now) || before != nil && !a.equal(*before, now)) {
		delete(a.by, of)
	}
}
