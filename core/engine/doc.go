// Package engine decides which node is best for a pod. Pods that no plugin can tell
// apart form an equivalence class. The engine keeps a view of a class from one
// decision to the next: how each node does with the filters and the scores. The
// answer is exact: every node counts, every time.
//
// # One decision
//
// The route is in decide.go (Engine.decide). Here it is for the second pod of a
// Deployment, just after the first was placed on node n2. The Example prints it:
//
//	Request{profile, pod}
//	  |
//	  | 1. classOf (core/classes): what the plugins can see of the pod, as bytes
//	  v
//	class "default|requests 500m|no tolerations|..."        the same as the first pod's
//	  |
//	  | 2. viewOf (cache.go): the view that is kept for the class
//	  v
//	view    partitions       taints reject {n3}       (core/answers)
//	        row filters      n1 fits   n2 fits        (Fit, ...)
//	        index            n1 170    n2 174         n3 closed
//	  |
//	  | 3. refresh (view.go): the table's journal says that n2 alone changed; the
//	  |    plugins are asked about n2
//	  v
//	        index            n1 170    n2 164         n3 closed
//	  |
//	  | 4. filterBuckets, scoreBuckets (decide.go): rows with equal raw scores and
//	  |    domains are one bucket; domains may rule a bucket out, and normalized scores
//	  |    are the same for all its rows
//	  v
//	        bucket 0 {n1, n2}   fits   bonus 100
//	  |
//	  | 5. Pick (core/ranking): the best bucket's best row; a seeded draw among equals
//	  v
//	Outcome{Row: n1, Score: 270, Ties: 1, Feasible: 2}
//
// The cost is that of the changed rows and of the buckets, not that of the nodes.
//
// # What is kept
//
// What a plugin says that reads node objects alone is a partition of the rows, by the
// plugin's signature of pods; all classes share it (core/answers). A view (view.go) has the
// index of all rows (core/ranking). It begins with sets (begin.go): partitions close the
// rows that they reject and split the others into buckets, one loop over each set of rows
// adds what CPU and memory decide, and plugins are asked about the rows that are left.
//
// There is one kind of view. That of a class that came by once is on trial (cache.go): such
// views push out each other alone, so classes that never come back leave nothing behind.
// When the class comes back its view stays and is counted in full, from the third time on
// with the cells of rows. All has bounds.
//
// # Special cases
//
// They branch off the route where it names them: nominated pods (nominated.go), pods
// narrowed to a few named nodes (narrowed.go), what extenders say (extenders.go),
// filters and scorers that look at whole topology domains (cells.go), values too
// many for buckets (scan.go), filters that fail (failure.go), hosted plugins
// (hosted.go), of which as few rows as possible are asked about (bestfirst.go,
// bounded.go). NewPlain decides without any of this (plain.go); the tests compare.
// Check compares every view with a fresh one (check.go).
//
// # After the choice
//
// report.go counts which nodes were rejected and why, and lists their scores.
// postfilter.go answers what preemption asks about a row of the table as it stands.
// onerow.go explains one row, once.go answers hosted plugins; neither looks at a view.
package engine
