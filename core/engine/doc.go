// Package engine decides which node is best for a pod. Pods that no plugin can tell
// apart form an equivalence class. The engine keeps a view of a class from one
// decision to the next: how each node does with the filters and the scores. The
// answer is exact: every node counts, every time.
//
// # One decision
//
// The route is in decide.go (Engine.decide). Here it is for the third pod of a
// Deployment, just after the second was placed on node n2 (the first had a transient
// view, the second pod's is kept):
//
//	Request{profile, pod}
//	  |
//	  | 1. classOf (class.go): what the plugins can see of the pod, as bytes
//	  v
//	class "default|requests 100m|no tolerations|..."        the same as the others'
//	  |
//	  | 2. viewOf (cache.go): the view that is kept for the class
//	  v
//	view    shared answers   n1 fits   n2 fits        n3 taint
//	        row filters      n1 fits   n2 fits        (Fit, ...)
//	        index            n1 170    n2 150 (old)   n3 cause 0
//	  |
//	  | 3. refresh (view.go): the table's journal says that n2 alone changed; the
//	  |    plugins are asked about n2
//	  v
//	        index            n1 170    n2 148         n3 cause 0
//	  |
//	  | 4. filterGroups, scoreGroups (decide.go): rows with equal raw scores and
//	  |    domains are one group; domains may rule a group out, and normalized scores
//	  |    are the same for all its rows
//	  v
//	        group 0 {n1, n2}   fits   bonus 100
//	  |
//	  | 5. Pick (core/ranking): the best group's best row; a seeded draw among equals
//	  v
//	Outcome{Row: n1, Score: 270, Ties: 1, Feasible: 2}
//
// The cost is that of the changed rows and of the groups, not that of the nodes.
//
// # What is kept
//
// Shared answers (shared.go) are those of the plugins that read node objects alone;
// classes that these plugins cannot tell apart share them, and what single filters say
// (parts.go) even where others tell them apart. A view (view.go) has the
// index of all rows (core/ranking). Both have bounds (cache.go). A class that comes
// by seldom gets a transient view (cache.go), whose buffers the next
// one uses: classes that never come back leave nothing behind.
//
// # Special cases
//
// They branch off the route where it names them: nominated pods (nominated.go), pods
// narrowed to a few named nodes (narrowed.go), what extenders say (extenders.go),
// filters and scorers that look at whole topology domains (cells.go), values too
// many for groups (scan.go), filters that fail (failure.go), hosted plugins
// (hosted.go), of which as few rows as possible are asked about (bestfirst.go,
// bounded.go), pods whose views are evaluated on several cores before their turn
// (ahead.go). NewPlain decides without any of this (plain.go); the tests compare.
// Check compares every view with a fresh one (check.go).
//
// # After the choice
//
// report.go counts which nodes were rejected and why, and lists their scores.
// postfilter.go answers what preemption asks about a row of the table as it stands.
// onerow.go explains one row, once.go answers hosted plugins; neither looks at a view.
package engine
