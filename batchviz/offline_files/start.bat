@echo off
rem Sets batchviz up from this folder, once and without a network, then opens the page.
rem With words behind it, it carries out a command instead: start.bat doctor
rem No blocks in brackets: a bracket in the folder's name would end them.
setlocal disabledelayedexpansion
set "here=%~dp0"
set "venv=%here%venv-Windows"
set "python="

for %%v in (@NUMBERS@) do if not defined python py -%%v -c "" >nul 2>nul && set "python=py -%%v"
if defined python goto found
python -c "import sys; sys.exit(sys.version_info[:2] not in (@TUPLES@,))" >nul 2>nul && set "python=python"
if defined python goto found
echo Python @VERSIONS@ is needed and was not found; install it, then start this again
goto failed

:found
if exist "%venv%\ready" goto ready
echo setting batchviz up, once; this takes a minute or two
if exist "%venv%" rmdir /s /q "%venv%"
%python% -m venv "%venv%"
if errorlevel 1 goto failed
"%venv%\Scripts\python.exe" -m pip --isolated install --quiet --disable-pip-version-check --no-index --find-links "%here%wheels" -r "%here%project\requirements.txt"
if errorlevel 1 goto failed
type nul >"%venv%\ready"

:ready
set "BATCHVIZ_CACHE=%here%weights"
set "HF_HUB_OFFLINE=1"
set "PYTHONPATH=%here%project"
set "PYTHONUTF8=1"
if not "%~1"=="" goto asked
"%venv%\Scripts\python.exe" -m batchviz app
if errorlevel 1 goto failed
exit /b 0

:asked
"%venv%\Scripts\python.exe" -m batchviz %*
exit /b %errorlevel%

:failed
if "%~1"=="" pause
exit /b 1
