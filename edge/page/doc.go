// Package page serves Berth's page to the browsers of the one who started it. A Server listens on
// loopback alone. It gives the empty page to anybody there, and data to a browser that opened the
// address with the one-time code. Data comes from a daemon, or from a handler that stands for one.
// The page itself is made of web/ by tools/bundle and is committed in assets.
//
// A page of another origin, a rebound name and another program's request without the cookie get no
// data: Server.ServeHTTP refuses them before any route is looked at.
package page
