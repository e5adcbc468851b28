# Writes OUT, a C file with the text of each of FILES as a constant: context.py is nk_driver_py.
# cmake -DOUT=… -DFILES=a|b -P embed.cmake
string(REPLACE "|" ";" FILES "${FILES}")
set(text "#include \"code/drivers.h\"\n")
foreach(file ${FILES})
  get_filename_component(name ${file} LAST_EXT)
  string(SUBSTRING ${name} 1 -1 name)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(APPEND text "\nconst char nk_driver_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
