module markers

go 1.21
