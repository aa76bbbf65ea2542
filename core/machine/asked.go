package machine

// asked holds the statuses that the API was asked to show, by a patch, and that the watch does not
// show yet. K identifies an object, and S is its status.
type asked[K comparable, S any] struct {
	by    map[K]S
	equal func(a, b S) bool
}

// newAsked returns an empty asked.
func newAsked[K comparable, S any](equal func(a, b S) bool) asked[K, S] {
	return asked[K, S]{by: map[K]S{}, equal: equal}
}

// latest returns the status of the object that was asked for; if none was, it returns shown, the
// status that the API shows now.
func (a asked[K, S]) latest(of K, shown S) S {
	if status, is := a.by[of]; is {
		return status
	}
	return shown
}

// due reports whether the API must be asked for status. That is so if it differs from the status
// that was asked for last or, if none was, from shown, which the API shows now. due then records
// status as asked for; the caller emits the patch.
func (a asked[K, S]) due(of K, shown, status S) bool {
	if a.equal(a.latest(of, shown), status) {
		return false
	}
	a.by[of] = status
	return true
}

// shows handles a watch event: the status of the object in the API changed from before (nil: the
// object is new) to now. It forgets the status that was asked for if now equals it. It also forgets
// it if now differs from before: somebody else may have written now.
func (a asked[K, S]) shows(of K, before *S, now S) {
	if status, is := a.by[of]; is && (a.equal(status, now) || before != nil && !a.equal(*before, now)) {
		delete(a.by, of)
	}
}
