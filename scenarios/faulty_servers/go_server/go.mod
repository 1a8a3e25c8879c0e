module faultyserver

go 1.23
