module github.com/glycerine/gosimnet

go 1.25

require (
	github.com/glycerine/idem v0.20.7
	github.com/glycerine/rbtree v0.2.1
	golang.org/x/net v0.50.0
)

require github.com/glycerine/one_tree_rwmut v1.0.0 // indirect
